# A codex that does what the tasks of the tutorial ask for.
if [ "$1" = login ]; then echo 'Logged in using ChatGPT'; exit; fi
prompt=$(cat)
say() { printf '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"%s"}}\n' "$1"; }
changed() { printf '{"type":"item.completed","item":{"id":"f","type":"file_change","changes":[{"path":"%s","kind":"%s"}],"status":"completed"}}\n' "$1" "$2"; }
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
case "$prompt" in
  Review*) say '{\"findings\":[]}' ;;
  'make test.sh pass'*)
    sed -i 's/\[ .* -eq 0 \]/[ $(($1 % 400)) -eq 0 ] || { [ $(($1 % 4)) -eq 0 ] \&\& [ $(($1 % 100)) -ne 0 ]; }/' leap.sh
    changed leap.sh update
    say 'Centuries are leap years only if divisible by 400.' ;;
  'print a usage message'*)
    sed -i '2i [ $# -eq 1 ] || { echo "usage: leap.sh YEAR" >\&2; exit 2; }' leap.sh
    changed leap.sh update
    say 'It prints a usage message now.' ;;
  'write README.md'*)
    printf '# Calendar\n\n`sh leap.sh YEAR` says whether it is a leap year.\n' > README.md
    changed README.md add
    say 'README.md is there.' ;;
  *) say 'leap.sh says that every fourth year is a leap year.' ;;
esac
echo '{"type":"turn.completed","usage":{"input_tokens":12000,"cached_input_tokens":8000,"output_tokens":900}}'
