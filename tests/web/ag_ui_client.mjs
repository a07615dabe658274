// A program with AG-UI's own client for JavaScript: says words, answers an interrupt, and prints what it heard.
import { HttpAgent } from "@ag-ui/client";

const [url, threadId, words, decision] = process.argv.slice(2);
const agent = new HttpAgent({ url, threadId });
const told = { events: [], text: "", failed: "", interrupts: [] };
const listener = {
  onEvent({ event }) {
    told.events.push(event.type);
    if (event.type === "TEXT_MESSAGE_CONTENT") told.text += event.delta;
    if (event.type === "RUN_FINISHED") told.interrupts = event.outcome?.interrupts ?? [];
    if (event.type === "RUN_ERROR") told.failed = event.message;
  },
};
agent.messages = [{ id: "m1", role: "user", content: words }];
try {
  await agent.runAgent({}, listener);
  if (decision && told.interrupts.length) {
    const resume = told.interrupts.map(one => ({ interruptId: one.id, status: "resolved", payload: { decision } }));
    await agent.runAgent({ resume }, listener);
  }
} catch (error) {
  told.failed ||= String(error);
}
told.messages = agent.messages.map(({ role, content }) => ({ role, content }));
console.log(JSON.stringify(told));
process.exit(0);
