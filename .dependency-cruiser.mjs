// Which file of src/ may import which, checked by `npm run lint`. In simulator/ only circles are refused. Types count like values.
// The arrows go one way: doors → relay → the platform's port. Nothing is imported from a place that is not named here.

/** The folders that a request, a message in a chat, the console's page or an alert of the relay comes in by. None imports another. */
const doors = ['http', 'hooks', 'onebot-api', 'commands', 'chat', 'console', 'alerts']

/** What every door may import: it parses, checks what the caller may do, and hands a submission to the relay. */
const forDoors = ['relay', 'message', 'access', 'uploads', 'lib', 'errors', 'texts']

/** Each place in src/ (a folder, or a file) with the other places that its files may import. */
const places = {
  // Wires the parts together, which nothing else does.
  'index': ['usage', 'config', 'platform', 'relay', 'metrics', 'service', 'incidents', 'beats', ...doors, ...forDoors],

  // What the relay says, in both languages.
  'texts': [],
  // Every part reports what goes wrong by these codes, so that the file depends on none of the parts.
  'errors': ['texts'],
  // A text of the config page.
  'usage': [],
  // Texts of the config page as well, one file a language.
  'locales': [],

  // Small helpers without a domain.
  'lib': ['errors', 'texts'],
  // Plain data, and how it is parsed: the language that doors, relay and platforms have in common.
  'message': ['lib', 'errors', 'texts'],
  // Others are handed the settings that they need, and do not know where those come from.
  'config': ['locales', 'message', 'lib', 'errors', 'texts'],
  // Files, whoever sends them and wherever they go.
  'uploads': ['lib', 'errors', 'texts'],
  // Who may do what, whichever door they come by. Keys that were made at run time are in the relay's store.
  'access': ['relay', 'message', 'lib', 'errors', 'texts'],

  // Knows nothing of HTTP, of commands or of OneBot. Of the platform it may import the port only, see below.
  'relay': ['platform', 'message', 'lib', 'errors', 'texts'],
  // Carries out what the relay asks for, without knowing who asks.
  'platform': ['message', 'lib', 'errors', 'texts'],

  // Counts what relay and doors report. They do not know it: index.ts hands it to them as what they report to.
  'metrics': ['relay', 'lib', 'texts'],

  // Beside the doors: it sees what the relay accepts, and says what somebody has to hear.
  'incidents': ['relay', 'platform', 'access', 'message', 'lib', 'errors', 'texts'],

  ...Object.fromEntries(doors.map(door => [door, forDoors])),
  'http': ['incidents', ...forDoors],
  // Shows in a chat what http/ shows, and makes addresses of hooks/.
  'chat': ['http', 'hooks', 'locales', 'platform', ...forDoors],
  // These are HTTP routes too, and share with http/ how a body is read and an answer is written.
  'hooks': ['http', ...forDoors],
  'onebot-api': ['http', ...forDoors],
  // The door of other plugins, which can add sources to hooks/.
  'service': ['hooks', 'incidents', ...forDoors],

  // Beside the doors: submits like a door, and has HTTP routes.
  'beats': ['http', ...forDoors],
}

/** The files of relay/, from the ground up: each may import those before it. */
const layers = [
  'clock', 'limits',
  ...room('store', 'store', 'schema', 'connection', 'lock', 'failures', 'workers', 'file-store', 'file-storage'),
  'delivery/summary', 'delivery/flow', 'delivery/delivery', 'options',
  ...room('delivery', 'row', 'filter', 'deliveries-table', 'purge', 'deliveries', 'history'),
  ...room('look-up', 'claims', 'look-up'),
  ...room('send', 'media', 'fit', 'compose', 'preview', 'context', 'items', 'thread', 'arrived', 'attempt', 'send'),
  ...room('queue', 'ways', 'obstacles', 'gates', 'bundle', 'queue', 'conclude', 'queues'),
  ...room('accept', 'fingerprint', 'inquiries', 'intake', 'recheck', 'keys'),
  'core', 'relay', 'start',
]

function room(name, ...files) {
  return files.map(file => `${name}/${file}`)
}

/** A pattern for the paths of all files in the places named: `src/errors.ts`, `src/relay/queue.ts`. */
function within(...names) {
  return `^src/(?:${names.join('|')})(?:/|[.]ts$)`
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-cycle-of-files',
      comment: 'Files that import one another can only be understood together, and which of them runs first is left to chance.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-cycle-of-folders',
      comment: 'As for files. A folder and those inside it count as one, because a part may be split up further inside.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^src/[^/]+$' },
      to: { circular: true, path: '^src/[^/]+$' },
    },
    {
      name: 'only-known-places',
      comment: 'A new folder, or a file beside index.ts, is entered above together with what it may import.',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: within(...Object.keys(places)) },
    },
    {
      name: 'only-what-can-be-found',
      comment: 'An import that cannot be followed is seen by none of these rules.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-file-without-use',
      comment: 'What index.ts does not import, directly or not, is not in the plugin.',
      severity: 'error',
      from: { path: '^src/index[.]ts$' },
      to: { path: '^src/', pathNot: '[.]d[.]ts$', reachable: false },
    },

    ...Object.entries(places).map(([place, imports]) => ({
      name: `${place}-imports-only`,
      comment: imports.length > 0 ? `${place} may import ${imports.join(', ')}.` : `${place} may import nothing of src/.`,
      severity: 'error',
      from: { path: within(place) },
      to: { path: '^src/', pathNot: within(place, ...imports) },
    })),

    {
      name: 'relay-knows-the-port-only',
      comment: 'The relay works with any platform: index.ts hands it an implementation of the port.',
      severity: 'error',
      from: { path: within('relay') },
      to: { path: within('platform'), pathNot: '^src/platform/port[.]ts$' },
    },
    ...layers.map((layer, index) => ({
      name: `relay-${layer}-imports-only-below`,
      comment: 'The core is built in layers: a file knows those below it, and none above.',
      severity: 'error',
      from: { path: `^src/relay/${layer}[.]ts$` },
      to: { path: '^src/relay/', pathNot: `^src/relay/(?:${layers.slice(0, index + 1).join('|')})[.]ts$` },
    })),
    {
      name: 'keeper-knows-no-relay',
      comment: 'What keeps the adapters of others connected could be a package of its own.',
      severity: 'error',
      from: { path: '^src/platform/keeper/' },
      to: { path: '^src/', pathNot: '^src/(?:platform/keeper|lib|texts)/' },
    },
    {
      name: 'onebot-is-wired-in-one-place',
      comment: 'What is particular to OneBot stays in its folder; others meet it as an implementation of the port.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/platform/(?:platforms|onebot/.+)[.]ts$' },
      to: { path: '^src/platform/onebot/' },
    },
    {
      name: 'plugins-know-the-service-only',
      comment: 'A plugin of plugins/ is a package of its own. Of the relay it sees the types of the public entry, like the plugins of others.',
      severity: 'error',
      from: { path: '^plugins/' },
      to: { path: '^(?:src|cli|bot|simulator|client)/', pathNot: '^src/index[.]ts$' },
    },
    {
      name: 'plugins-use-types-only',
      comment: 'The relay is loaded by Koishi, and reached through its service.',
      severity: 'error',
      from: { path: '^plugins/' },
      to: { path: '^src/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'doors-submit-only',
      comment: 'A door hands over a submission and reads what became of it. Everything else is the relay\'s own.',
      severity: 'error',
      from: { path: within(...doors, 'service', 'metrics') },
      to: { path: within('relay'), pathNot: '^src/relay/(?:relay|options|delivery/(?:delivery|filter|summary)|queue/(?:queue|obstacles|bundle)|accept/inquiries|store/store)[.]ts$' },
    },
  ],

  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
}
