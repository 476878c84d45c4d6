/**
 * The tables, as statements by version: the first makes a new file, each further one changes what the one before left. A statement that was
 * released never changes. Texts that come from outside are JSON or hexadecimal, or were checked for NUL by a parser.
 */
export const migrations: readonly string[] = [`
  -- Deliveries that wait, and records of those that ended: deliveries-table.ts.
  CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    target TEXT NOT NULL,
    bot TEXT NOT NULL,
    caller TEXT,
    door TEXT NOT NULL,
    thread TEXT,
    key TEXT,
    updated_at REAL NOT NULL,
    summary TEXT NOT NULL,
    record TEXT NOT NULL,
    items TEXT
  ) STRICT;
  CREATE UNIQUE INDEX deliveries_key ON deliveries (key) WHERE key IS NOT NULL;
  CREATE INDEX deliveries_state ON deliveries (state, id);
  CREATE INDEX deliveries_target ON deliveries (target, id);
  CREATE INDEX deliveries_caller ON deliveries (caller, id) WHERE caller IS NOT NULL;
  CREATE INDEX deliveries_thread ON deliveries (thread, id) WHERE thread IS NOT NULL;

  -- API keys and names of targets that were made while the relay runs, by their names: access/.
  CREATE TABLE keys (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  CREATE TABLE targets (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  -- How API keys were used, by the names of their callers; empty for the master key: access/.
  CREATE TABLE usage (caller TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  -- The last payload of each source: hooks/payloads.ts.
  CREATE TABLE payloads (source TEXT PRIMARY KEY, at REAL NOT NULL, entry TEXT NOT NULL) STRICT;

  -- People, rotas and beats that were made while the relay runs, by their names: incidents/, beats/.
  CREATE TABLE people (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  CREATE TABLE rotas (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  -- Who takes over for a time, by the names of rotas: incidents/.
  CREATE TABLE swaps (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  CREATE TABLE beats (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT;
  -- How the beats of settings and page are doing, and their secrets: beats/.
  CREATE TABLE signs (name TEXT PRIMARY KEY, secret TEXT UNIQUE NOT NULL, due_at REAL, entry TEXT NOT NULL) STRICT;
  CREATE INDEX signs_due ON signs (due_at) WHERE due_at IS NOT NULL;
  -- Incidents by name and the hash of their thread, and the platform messages that belong to them: incidents/.
  CREATE TABLE incidents (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    thread TEXT NOT NULL,
    state TEXT NOT NULL,
    since REAL NOT NULL,
    due_at REAL,
    untold INTEGER NOT NULL,
    entry TEXT NOT NULL
  ) STRICT;
  CREATE INDEX incidents_thread ON incidents (name, thread, since);
  CREATE INDEX incidents_since ON incidents (since);
  CREATE INDEX incidents_state ON incidents (state, since);
  CREATE INDEX incidents_untold ON incidents (id) WHERE untold > 0;
  CREATE INDEX incidents_due ON incidents (due_at) WHERE due_at IS NOT NULL;
  CREATE TABLE incident_messages (chat TEXT NOT NULL, message TEXT NOT NULL, incident TEXT NOT NULL, PRIMARY KEY (chat, message, incident)) STRICT, WITHOUT ROWID;
  CREATE INDEX incident_messages_incident ON incident_messages (incident);
`]
