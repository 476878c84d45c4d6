import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { codeOf } from '../../errors'
import { onAbort } from '../../lib/async'

/** An error in another thread. */
export class WorkerError extends Error {
  /** @param code the code of the file system, or the text of SQLite */
  constructor(readonly code: string) {
    super(code)
  }
}

// The sources stand here as texts because the published plugin is one file.

/** Makes a file safe from a power cut at each message, and answers with the code of the error, if there is one. */
const syncing = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { fdatasyncSync } = require('node:fs')
  parentPort.on('message', () => {
    let failure
    try {
      fdatasyncSync(workerData)
    } catch (error) {
      failure = String(error.code)
    }
    parentPort.postMessage(failure)
  })
`

/** The heap of such a thread, in MB. */
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }

/**
 * Makes a file safe from a power cut, in a thread of its own: in the pool of Node.js it would wait behind uploads and look-ups of names.
 * The thread does not keep the process alive while it has nothing to do.
 */
export class Syncer {
  private readonly worker: Worker
  private readonly descriptor: number
  private waiting: { resolve: () => void, reject: (error: Error) => void } | undefined
  private death: Error | undefined

  /** @throws the error of the file system */
  constructor(path: string) {
    // Windows makes no file safe that was opened for reading only.
    this.descriptor = openSync(path, 'r+')
    const worker = this.worker = new Worker(syncing, { eval: true, workerData: this.descriptor, resourceLimits })
    worker.on('message', (failure?: string) => this.settle(failure === undefined ? undefined : new WorkerError(failure)))
    worker.on('error', error => this.die(new WorkerError(codeOf(error))))
    worker.on('exit', () => this.die(new WorkerError('the thread has ended')))
    worker.unref()
  }

  /** Resolves once everything written so far is safe; one call at a time. @throws WorkerError */
  sync(): Promise<void> {
    if (this.death) return Promise.reject(this.death)
    this.worker.ref()
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject }
      this.worker.postMessage(undefined)
    })
  }

  async close(): Promise<void> {
    await this.worker.terminate()
    closeSync(this.descriptor)
  }

  private die(error: Error): void {
    this.death ??= error
    this.settle(this.death)
  }

  private settle(failure: Error | undefined): void {
    const { waiting } = this
    this.waiting = undefined
    this.worker.unref()
    if (failure) waiting?.reject(failure)
    else waiting?.resolve()
  }
}

/**
 * Copies a database, checks the copy, and makes it one file without a write-ahead log. Answers with the error's text, if there is one. A
 * copy during which another process has written is made once more.
 */
const copying = `
  const { closeSync, copyFileSync, fsyncSync, openSync, rmSync, statSync } = require('node:fs')
  const { parentPort, workerData: { library, file, log, copy } } = require('node:worker_threads')
  const { Database } = require(library)
  const sources = log === undefined ? [file] : [file, log]
  const look = () => JSON.stringify(sources.map(path => statSync(path)).map(({ size, mtimeMs }) => [size, mtimeMs]))
  function make() {
    const before = look()
    for (const suffix of ['-wal', '-journal', '.lock']) rmSync(copy + suffix, { recursive: true, force: true })
    sources.forEach((path, index) => copyFileSync(path, index === 0 ? copy : copy + '-wal'))
    const database = new Database(copy)
    const ask = pragma => Object.values(database.all('PRAGMA ' + pragma)[0])[0]
    ask('locking_mode = EXCLUSIVE')
    const answer = ask('integrity_check(1)')
    ask('wal_checkpoint(TRUNCATE)')
    ask('journal_mode = DELETE')
    database.close()
    const descriptor = openSync(copy, 'r+')
    fsyncSync(descriptor)
    closeSync(descriptor)
    if (answer !== 'ok') return 'database disk image is malformed: ' + answer
    if (before !== look()) return 'another process writes to the database'
  }
  let failure
  for (let attempt = 1; attempt <= 3; attempt++) {
    try {
      failure = make()
      if (failure === undefined) break
    } catch (error) {
      failure = error.code ?? error.message
    }
  }
  parentPort.postMessage(failure)
`

/**
 * Makes one checked file of a database, in a thread of its own.
 *
 * @param log its write-ahead log; without one, what the file alone has is copied
 * @param stop ends the work
 * @throws WorkerError
 */
export async function copyDatabase(file: string, log: string | undefined, copy: string, stop: AbortSignal): Promise<void> {
  const worker = new Worker(copying, { eval: true, workerData: { library: require.resolve('node-sqlite3-wasm'), file, log, copy } })
  const unwatch = onAbort(stop, () => void worker.terminate())
  try {
    const [failure] = await Promise.race([once(worker, 'message'), once(worker, 'exit').then(() => ['the thread has ended'])])
    if (failure !== undefined) throw new WorkerError(String(failure))
  } finally {
    unwatch()
  }
}
