import { field } from '../lib/values'

/** Handles a command of the benchmark; may throw. */
type Command = (argument: unknown) => unknown

/** Answers commands until the parent disconnects, then ends the process. */
export function serve(commands: Readonly<Record<string, Command>>): void {
  const all: Readonly<Record<string, Command>> = { memory, ...commands }
  process.on('message', message => void answer(all, message))
  process.once('disconnect', () => process.exit())
}

async function answer(commands: Readonly<Record<string, Command>>, message: unknown): Promise<void> {
  const id = field(message, 'id')
  try {
    const command = commands[String(field(message, 'command'))]
    if (!command) throw new Error('there is no such command')
    process.send?.({ id, answer: await command(field(message, 'argument')) })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.stack ?? error.message : String(error) })
  }
}

/** The memory of the process in bytes, after a garbage collection if Node.js runs with `--expose-gc`. */
function memory(): object {
  globalThis.gc?.()
  return process.memoryUsage()
}
