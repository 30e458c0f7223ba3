// @ts-check
/// <reference path="./graph.d.ts" />
export const meta = {
  name: 'folder-report',
  description: 'Reports on a granted folder: how many files and folders, how large, which are the largest, what kinds. Needs no model.',
  whenToUse: 'When someone asks what is in a folder on this machine.',
  phases: [
    { title: 'listing', detail: 'reads the names and sizes below the folder' },
    { title: 'reading files', detail: 'counts the lines of its largest text files' },
  ],
  args: {
    type: 'object',
    required: ['folder'],
    properties: {
      folder: { type: 'string', minLength: 1, description: 'a granted folder: absolute or ~/…' },
      largest: { type: 'integer', minimum: 1, maximum: 50, description: 'how many of the largest files to name' },
    },
    additionalProperties: false,
  },
  result: {
    type: 'object',
    required: ['folder', 'files', 'folders', 'bytes', 'largest', 'kinds', 'lines_read', 'summary'],
  },
};

phase('listing');
const listing = await tool('mcp__files__list', { path: args.folder, depth: 32 }, { label: 'list' });
const files = listing.entries.filter((entry) => entry.kind === 'file');
const folders = listing.entries.filter((entry) => entry.kind === 'folder');
if (listing.truncated) log(`the folder has more than ${listing.entries.length} entries: the report covers the first ones`);
const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
const bySize = files.toSorted((one, other) => other.bytes - one.bytes || (one.path < other.path ? -1 : 1));
const largest = bySize.slice(0, args.largest ?? 10);

const kinds = {};
for (const file of files) {
  const name = file.path.split('/').at(-1);
  const dot = name.lastIndexOf('.');
  const kind = dot > 0 ? name.slice(dot + 1).toLowerCase() : '(none)';
  kinds[kind] = (kinds[kind] ?? 0) + 1;
}

phase('reading files');
const read = await parallel(
  largest.map((file) => () => tool('mcp__files__read', { path: `${listing.path}/${file.path}`, max_bytes: 1048576 }, { label: file.path })),
  { concurrency: 4 },
);
const described = largest.map((file, index) => {
  const content = read[index];
  const lines = content && !content.binary ? content.text.split('\n').length : null;
  return { path: file.path, bytes: file.bytes, lines, text: lines !== null };
});

const size = (count) => (count < 1024 ? `${count} B` : count < 1048576 ? `${Math.round(count / 1024)} KB` : `${(count / 1048576).toFixed(1)} MB`);
const top = described[0];
return {
  folder: listing.path,
  files: files.length,
  folders: folders.length,
  bytes,
  complete: !listing.truncated && listing.unreadable === 0,
  largest: described,
  kinds: Object.fromEntries(Object.entries(kinds).sort((one, other) => other[1] - one[1]).slice(0, 20)),
  lines_read: described.reduce((sum, file) => sum + (file.lines ?? 0), 0),
  summary: `${files.length} files, ${folders.length} folders, ${size(bytes)}${top ? ` · largest: ${top.path} (${size(top.bytes)})` : ''}`,
};
