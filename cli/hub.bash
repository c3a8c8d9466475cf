# Completion of hub for bash: source this file, or put it into
# ~/.local/share/bash-completion/completions/hub

_hub() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local commands='pull cat search versions labels lock sync update push label help' words=
    # Which operand of the command it is, from 1; 0 is the command.
    local operand=$((COMP_CWORD - 1))
    [[ ${COMP_WORDS[2]-} != --trusted || $COMP_CWORD -eq 2 ]] || operand=$((operand - 1))
    COMPREPLY=()
    case $before in
    -o | --output | --file)
        _hub_files "$word"
        return
        ;;
    --sort) words='top trending new' ;;
    --as) words='dotprompt prompty skill' ;;
    --version | --label | --at | --expected | --tag | --page) ;;
    *)
        case $operand:${COMP_WORDS[1]} in
        0:*) words="$commands --version --help" ;;
        *:pull) words='--version --label --at --output --force --offline --no-cache --help' ;;
        *:cat)
            words='--version --label --at --body --as --output --force --offline --no-cache --help'
            ;;
        *:search) words='--tag --sort --page --json --help' ;;
        *:versions) words='--json --help' ;;
        *:labels) words='--help' ;;
        *:lock | *:update) words='--file --help' ;;
        *:sync) words='--check --force --offline --file --help' ;;
        *:label) words='--expected --remove --help' ;;
        1:help) words=$commands ;;
        1:push) words='--trusted --help' ;;
        2:push)
            _hub_files "$word"
            return
            ;;
        4:push) words='major minor patch auto' ;;
        esac
        ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}

# Bash 3.2, as on macOS, has neither mapfile nor compopt.
_hub_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$1"))
    compopt -o filenames 2>/dev/null || :
}

complete -F _hub hub
