# Completion of rackcast and rackcast-calib in bash. It asks the program, so that it knows just what the program knows.
_rackcast() {
  local program="${COMP_WORDS[0]}" word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}" verbs=() help words=""
  local i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == [a-z]* && ${COMP_WORDS[i]} != *[./]* ]] || break
    verbs+=("${COMP_WORDS[i]}")
  done
  help="$("$program" "${verbs[@]:0:1}" --help 2>/dev/null)"
  case "$before" in
    --model | --gpu) [[ $program == *calib ]] || words="$("$program" list "${before#--}s" 2>/dev/null | awk 'NR > 1 {print $1}')" ;;
    --format) words="vllm dynamo srt-slurm" ;;
    --data-dir) COMPREPLY=($(compgen -d -- "$word")); return ;;
  esac
  if [[ -z $words ]]; then
    case "${verbs[0]}:$word" in
      *:-*) words="$(grep -oE -- '--[a-z][a-z-]*' <<<"$help")" ;;
      :*) words="$(awk '/^Subcommands:/ {inside = 1; next} /^$/ {inside = 0} inside && /^  [a-z]/ {print $1}' <<<"$help")" ;;
      list:*) words="gpus racks models costs prices policies traces suites" ;;
      schema:*) words="$("$program" schema 2>/dev/null | sed -n 's/^## \([a-z_]*\):.*/\1/p')" ;;
      trace:*) [[ ${#verbs[@]} -eq 1 ]] && words="stats convert generate" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _rackcast rackcast rackcast-calib
