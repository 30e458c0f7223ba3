// @ts-check
/// <reference path="./graph.d.ts" />
export const meta = {
  name: 'summarise',
  description: 'Summarises the text files of a granted folder, one agent a file, and then the folder as a whole. Needs a model provider.',
  whenToUse: 'When someone wants to know what the notes or documents in a folder say.',
  phases: [
    { title: 'listing' },
    { title: 'summarising files', detail: 'one agent a file, at the same time' },
    { title: 'summing up' },
  ],
  args: {
    type: 'object',
    required: ['folder'],
    properties: {
      folder: { type: 'string', minLength: 1, description: 'a granted folder: absolute or ~/…' },
      files: { type: 'integer', minimum: 1, maximum: 100, description: 'how many files at most' },
    },
    additionalProperties: false,
  },
  result: { type: 'object', required: ['folder', 'overview', 'files', 'left_out'] },
  limits: { tokens: 200_000, max_concurrency: 4, agents: 101 },
};

phase('listing');
const listing = await tool('mcp__files__list', { path: args.folder, depth: 8 });
const texts = listing.entries.filter((entry) => entry.kind === 'file' && /\.(md|txt|rst|org|adoc)$/i.test(entry.path));
const chosen = texts.slice(0, args.files ?? 20);
if (chosen.length === 0) throw new GraphError(`no text files in ${listing.path}`, 'nothing_to_do');

const one = { type: 'object', required: ['summary', 'topics'], additionalProperties: false, properties: {
  summary: { type: 'string', maxLength: 600 },
  topics: { type: 'array', maxItems: 5, items: { type: 'string' } },
} };

phase('summarising files');
const answers = await pipeline(
  chosen,
  (file) => tool('mcp__files__read', { path: `${listing.path}/${file.path}`, max_bytes: 32768 }, { label: file.path }),
  (content, file) => content.binary ? null : retry({ max: 2, delay_ms: 1000 }, () =>
    agent(`Summarise this file in at most three sentences.\n\nFile ${file.path}:\n${content.text}`, { schema: one, label: file.path, max_tokens: 500 })),
);
const summaries = chosen.flatMap((file, index) => (answers[index] ? [{ path: file.path, ...answers[index] }] : []));
if (summaries.length === 0) throw new GraphError('not one file could be summarised', 'agent_failed');

phase('summing up');
const overview = await agent(
  `These are summaries of the files of one folder. Say in one paragraph what the folder is about.\n\n${summaries.map((file) => `${file.path}: ${file.summary}`).join('\n')}`,
  { label: 'overview', max_tokens: 500 },
);
return { folder: listing.path, overview, files: summaries, left_out: texts.length - summaries.length };
