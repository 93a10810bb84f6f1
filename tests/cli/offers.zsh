# Prints what zsh offers when TAB is pressed after $1, one a line. $PWD is where the function _corral lies.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d $PWD/.dump'
# Each word that is added is printed; the shell ends after the first completion.
zpty -w shell 'compadd() { typeset -a hits; builtin compadd -O hits "$@"; builtin compadd "$@"; local code=$?
    [[ "$*" == *-[ODA]\ * ]] || print -rl -- "OFFERED:"${^hits}; return $code }'
zpty -w shell 'comppostfuncs=(over); over() { print "OVER"; exit }; print "REA""DY"'
local line
while zpty -r shell line; do [[ $line == *READY* ]] && break; done
zpty -n -w shell "$1"$'\t'
while zpty -r shell line; do
    [[ $line == *OVER* ]] && break
    [[ $line == *OFFERED:* ]] && line=${line##*OFFERED:} && print -r -- "${line%%$'\r'*}"
done
true
