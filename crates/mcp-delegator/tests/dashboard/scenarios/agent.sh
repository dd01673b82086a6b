#!/bin/bash
# A codex that does what words of its task text ask for.
[ "$1" = --version ] && echo codex-cli 0.166.0 && exit 0
[ "$1" = sandbox ] && exit 0
prompt=$(cat)
event() { printf '%s\n' "$1"; }
event '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
event '{"type":"turn.started"}'
event '{"type":"item.completed","item":{"id":"p","type":"todo_list","items":[{"text":"Read the code","completed":true},{"text":"Change it","completed":false}]}}'
event '{"type":"item.completed","item":{"id":"c1","type":"command_execution","command":"ls","aggregated_output":"app.js\n","exit_code":0,"status":"completed"}}'
case "$prompt" in *failing*)
  event '{"type":"item.completed","item":{"id":"c2","type":"command_execution","command":"cargo test","aggregated_output":"test a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n","exit_code":101,"status":"failed"}}' ;;
esac
change() { event '{"type":"item.completed","item":{"id":"f","type":"file_change","changes":[{"path":"app.js","kind":"update"}],"status":"completed"}}'; }
case "$prompt" in
  *"wait for go"*)
    step=0
    until [ -e go ]; do
      step=$((step + 1))
      event "{\"type\":\"item.completed\",\"item\":{\"id\":\"m$step\",\"type\":\"agent_message\",\"text\":\"step $step\"}}"
      sleep 0.3
    done ;;
  *"Name it total"*) sed -i 's/count/total/g' app.js; change ;;
  *"hostile files"*)
    name='<img src=x onerror=hacked()>.js'
    printf '<script>hacked()</script>\n"'"'"'>\xe2\x80\xae<svg onload=hacked()>\n' > "$name" ;;
  *"large"*) for file in 1 2 3 4; do seq 5000 | sed "s/^/line $file /" > "large$file.txt"; done ;;
  *"count from"*) sed -i "s/let count = 0/let count = $RANDOM$RANDOM/" app.js; change ;;
  *) sed -i 's/let count = 0/let count = 1/' app.js; echo 'export const added = true;' > added.js; change ;;
esac
event '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"I changed **app.js** <script>hacked()</script>.\nAll tests pass."}}'
event '{"type":"turn.completed","usage":{"input_tokens":12000,"cached_input_tokens":8000,"output_tokens":900}}'
