# Tests leap.sh; exit status 0 if it is right.

. ./leap.sh

failures=0

check() {
    if is_leap "$1"; then found=yes; else found=no; fi
    if [ "$found" = "$2" ]; then
        echo "ok    $1: $found"
    else
        echo "FAIL  $1: expected $2, found $found"
        failures=$((failures + 1))
    fi
}

check 2024 yes
check 2023 no
check 1900 no
check 2000 yes

echo "$failures failed"
[ "$failures" -eq 0 ]
