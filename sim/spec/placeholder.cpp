// Placeholder of the skeleton; replaced by the first real file of this folder.
