// The three standard streams as a program may find them: closed, or with a full disk behind them.
#pragma once

namespace rackcast {

// A closed one is opened on nothing, so that no file of ours gets its number and takes text that was meant for people;
// writing to a stdout that was closed still fails. What cannot be written to stderr is dropped: a note that nobody can
// read must not end a run. Before anything else in main().
void secure_standard_streams();

}  // namespace rackcast
