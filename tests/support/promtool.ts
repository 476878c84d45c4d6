import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'

const executable = '/usr/bin/promtool'

/** Why tests are skipped, or false. A machine without promtool can run all other tests; CI must have it. */
export const missing: string | false = existsSync(executable) || process.env.CI ? false : 'there is no promtool: apt-get install prometheus'

/**
 * Runs Prometheus' own tool.
 *
 * @param input its standard input
 * @returns its exit code, and all of its output
 */
export function promtool(args: readonly string[], input = ''): Promise<{ code: number, text: string }> {
  return new Promise(resolve => {
    const child = execFile(executable, args, { timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), text: stdout + stderr })
    })
    child.stdin?.end(input)
  })
}
