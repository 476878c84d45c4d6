import { Worker } from 'node:worker_threads'
import { codeOf } from '../../errors'

// The sources stand here as texts because the published plugin is one file.

/** Makes a file safe from a power cut at each message, and answers with the code of the error, if there is one. */
const syncing = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { fdatasyncSync, openSync } = require('node:fs')
  // Windows makes no file safe that was opened for reading only.
  const descriptor = openSync(workerData, 'r+')
  parentPort.on('message', () => {
    let failure
    try {
      fdatasyncSync(descriptor)
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
  private waiting: { resolve: () => void, reject: (error: Error) => void } | undefined
  private death: Error | undefined

  constructor(path: string) {
    const worker = this.worker = new Worker(syncing, { eval: true, workerData: path, resourceLimits })
    worker.on('message', (failure?: string) => this.settle(failure === undefined ? undefined : new Error(failure)))
    worker.on('error', error => this.die(new Error(codeOf(error))))
    worker.on('exit', () => this.die(new Error('the thread has ended')))
    worker.unref()
  }

  /** Resolves once everything written so far is safe; one call at a time. @throws an error with the code of the file system as its text */
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
