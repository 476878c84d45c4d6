declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  namespace autocannon {
    interface Client {
      setRequests(requests: { body: string, path?: string }[]): void
    }
    interface Options {
      url: string
      method: 'GET' | 'POST'
      headers: Record<string, string>
      body?: string
      connections: number
      /** In seconds. */
      duration: number
      /** The interval in milliseconds at which the generator checks whether the run is over. */
      sampleInt: number
      /** In seconds. */
      timeout: number
      setupClient: (client: Client) => void
    }
    interface Result {
      errors: number
      timeouts: number
    }
    interface Instance extends EventEmitter, PromiseLike<Result> {
      stop(): void
    }
  }

  function autocannon(options: autocannon.Options): autocannon.Instance
  export = autocannon
}
