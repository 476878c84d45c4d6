declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  namespace autocannon {
    interface Request {
      body: string
      path?: string
      headers?: Record<string, string>
      /** Called before each request. */
      setupRequest?: (request: Request) => Request
    }
    interface Client {
      setRequests(requests: Request[]): void
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
