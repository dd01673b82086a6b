# Is this year a leap year in the Gregorian calendar?
#
#     sh leap.sh 2024

is_leap() {
    [ $(($1 % 4)) -eq 0 ]
}

if [ -n "${1-}" ]; then
    if is_leap "$1"; then echo yes; else echo no; fi
fi
