# Completion of hub for bash: source this file, or put it into
# ~/.local/share/bash-completion/completions/hub
# The help of hub says which commands and options there are.

_hub() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local hub=${COMP_WORDS[0]} command=${COMP_WORDS[1]} operand=0 words= one
    for one in "${COMP_WORDS[@]:2:COMP_CWORD-1}"; do
        [[ $one == -* ]] || operand=$((operand + 1))
    done
    COMPREPLY=()
    case $before in
    -o | --output | --file)
        _hub_files "$word"
        return
        ;;
    --as) words=skill ;;
    --version | --label | --expected | --tag | --page) ;;
    *)
        case $COMP_CWORD:$operand:$command in
        1:*) words="$(_hub_commands) help --version --help" ;;
        2:1:help) words=$(_hub_commands) ;;
        *:2:push)
            _hub_files "$word"
            return
            ;;
        *:4:push) words='major minor patch auto' ;;
        esac
        [[ $word != -* || $COMP_CWORD -eq 1 ]] ||
            words="$("$hub" help "$command" 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' || :) --help"
        ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}

_hub_commands() {
    "$hub" help 2>/dev/null | sed -n 's/^  hub \([a-z]*\) .*/\1/p'
}

# Bash 3.2, as on macOS, has neither mapfile nor compopt.
_hub_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$1"))
    compopt -o filenames 2>/dev/null || :
}

complete -F _hub hub
