/* One answer to one sentence. `parley skill build` compiles this, `parley skill test` says the sentences of tests.yaml. */

#include "parley.h"

static void answer(Call *call) {
  char name[40];
  say("Hello");
  if (text(call, "name", name, sizeof name)) {
    say(", ");
    say(name);
  }
  say(".");
}
