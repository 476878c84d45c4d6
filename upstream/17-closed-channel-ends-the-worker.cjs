// A signal to both processes of `koishi start`, as Ctrl+C sends it, ends the worker at once: it writes to the channel of the ended parent.
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')

async function main() {
  const cwd = mkdtempSync(join(tmpdir(), 'koishi-'))
  process.on('exit', () => rmSync(cwd, { recursive: true }))
  writeFileSync(join(cwd, 'package.json'), '{}')
  writeFileSync(join(cwd, 'koishi.json'), JSON.stringify({ plugins: { [join(cwd, 'plugin.cjs')]: {} } }))
  writeFileSync(join(cwd, 'plugin.cjs'), `exports.apply = ctx => {
    ctx.on('ready', () => setInterval(() => console.log(process.connected ? 'it runs' : 'it runs alone'), 50))
    ctx.on('exit', () => new Promise(resolve => setTimeout(() => resolve(console.log('all is saved')), 300)))
  }`)
  const worker = fork(join(dirname(require.resolve('koishi/package.json')), 'lib/worker'), { cwd, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let output = ''
  worker.stdout.on('data', data => output += data)
  const ended = Promise.all([once(worker, 'exit'), once(worker.stdout, 'end')])
  while (!output.includes('it runs')) await once(worker.stdout, 'data')
  // The parent has no handler of the signal, so that it ends first.
  worker.disconnect()
  while (!output.includes('alone')) await once(worker.stdout, 'data')
  worker.kill('SIGTERM')
  const [[code]] = await ended
  if (output.includes('all is saved')) end(1, 'mended: the listeners of "exit" could finish')
  end(0, `reproduced: exit code ${code} before the listeners of "exit" finished (${/ERR_\w+/.exec(output)?.[0] ?? /Error.*/.exec(output)?.[0]})`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
