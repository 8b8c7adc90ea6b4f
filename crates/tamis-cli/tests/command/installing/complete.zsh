# What zsh offers when Tab is pressed behind a line.
#
#   zsh complete.zsh SETUP LINE OFFERS
#
# A shell on a terminal of its own evaluates SETUP, which its user would have in ~/.zshrc, and
# is typed LINE and a Tab. What it offers goes into the file OFFERS, one a line, and what it
# complains about to standard error.
export SETUP=$1 OFFERS=$3

# The shell under test. `compadd` is how every completion offers; with -O, -A or -D it only asks.
inner=$OFFERS.zshrc
cat >$inner <<'END'
PS1= PS2= RPS1=
exec 3>&2 2>$OFFERS.errors
eval "$SETUP"
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-[a-zA-Z]#(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- $offered >>$OFFERS
    builtin compadd "$@"
}
told() { print -n "offered-$((6 * 7))" }
press() { comppostfuncs=(told); _main_complete }
zle -C press list-choices press
bindkey '^I' press
setopt extended_glob
exec 2>&3
END

zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "stty -echo; source ${(q)inner}; print ready-\$((6 * 7))"
zpty -r shell said '*ready-42*' || exit 2
[[ ! -s $OFFERS.errors ]] || { cat $OFFERS.errors >&2; exit 1 }
zpty -w -n shell "$2"$'\t'
zpty -r shell said '*offered-42*' || exit 2
zpty -d shell
