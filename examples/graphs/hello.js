// @ts-check
/// <reference path="./graph.d.ts" />
export const meta = {
  name: 'hello',
  description: 'Greets whoever is named. Shows arguments, a phase, a log line and a result; needs no model.',
  whenToUse: 'To see that a run gets from a chat to this machine and back.',
  phases: [{ title: 'greeting' }],
  args: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 200, description: 'whom to greet' } },
    additionalProperties: false,
  },
  result: { type: 'object', required: ['greeting', 'at'] },
};

phase('greeting');
const name = args.name ?? 'world';
log(`greeting ${name}`);
return { greeting: `Hello, ${name}!`, at: new Date().toISOString() };
