#!/usr/bin/env bash
# manual.sh PROGRAM VERSION PAGE: a manual page from the program's own --help, verb by verb.
set -euo pipefail
program="$1" version="$2" page="$3" name="$(basename "$1")"

ask() { (exec -a "$name" "$program" "$@" --help); }
plain() { sed -e 's/\\/\\e/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; }  # what roff would take for its own
verbs_in() { awk '/^Subcommands:/ {inside = 1; next} /^$/ {inside = 0} inside && /^  [a-z]/ {print $1}'; }

text() {
  local heading="$1"
  shift
  echo ".SS $heading"
  echo ".nf"
  ask "$@" | plain
  echo ".fi"
  local verb
  for verb in $(ask "$@" | verbs_in); do
    [ $# -eq 0 ] || text "$heading $verb" "$@" "$verb"
  done
}

{
  summary="$(ask | head -n 1 | sed 's/\.$//')"
  echo ".TH ${name^^} 1 \"\" \"rackcast $version\" \"User Commands\""
  echo ".SH NAME"
  echo "$name \\- ${summary,}" | sed 's/-calib \\/\\-calib \\/'
  echo ".SH SYNOPSIS"
  echo ".B $name"
  echo ".I VERB"
  echo "[OPTIONS]"
  echo ".SH OPTIONS AND VERBS"
  text "$name"
  for verb in $(ask | verbs_in); do text "$name $verb" "$verb"; done
  echo ".SH EXIT STATUS"
  echo "0: done. 1: ran, but a bound was missed. 2: bad input or usage. 3: not possible here. 70: a bug in $name."
  echo ".SH FILES AND ENVIRONMENT"
  echo "Data lies in ../share/rackcast/scenarios beside the program; RACKCAST_SCENARIOS names a folder that is looked at first,"
  echo "RACKCAST_DATA one with recorded traces and published tables. NO_COLOR turns colours off."
  echo ".SH SEE ALSO"
  [ "$name" = rackcast ] && echo ".BR rackcast\\-calib (1)" || echo ".BR rackcast (1)"
} >"$page.new"
mv "$page.new" "$page"
