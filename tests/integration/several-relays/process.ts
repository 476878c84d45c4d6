// A relay in a process of its own: `process.ts '<SharedOptions as JSON>' [ahead]` prints its address once it listens.
// `ahead` is how far its clock is ahead of ours, in milliseconds.
import { readOptions } from './options'

const [, , json = '', ahead = '0'] = process.argv
if (Number(ahead) !== 0) {
  const now = Date.now.bind(Date)
  Date.now = () => now() + Number(ahead)
}

async function run(): Promise<void> {
  // Loaded after the clock was set.
  const { startShared } = await import('./relay')
  const { url } = await startShared(readOptions(json))
  process.stdout.write(`${JSON.stringify({ url })}\n`)
}

// It must not outlive the test, whose end closes this.
process.stdin.on('end', () => process.exit()).resume()
void run()
