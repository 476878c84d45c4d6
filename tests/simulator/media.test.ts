import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '../support/folder'
import { serve } from '../support/listen'
import { record, startWithClient, text } from './support'

const bytes = Buffer.from('not really a picture, 但有字节')
const sha256 = createHash('sha256').update(bytes).digest('hex')

const image = (file: string, more = {}): object => ({ type: 'image', data: { file, ...more } })

test('a link to another machine is recorded but never fetched, nor is a redirect there followed', async t => {
  const { simulator, client } = await startWithClient(t)
  const origin = await serve(t, (request, response) => {
    if (request.url === '/new') response.end(bytes)
    else response.writeHead(302, { Location: request.url === '/old' ? '/new' : 'http://example.com/a.png' }).end()
  })
  const send = (link: string) => client.call('send_group_msg', { group_id: 123456, message: [image(link)] })
  assert.equal((await send('https://example.com/pictures/a.png')).status, 'ok')
  const answer = await send(`${origin}/a.png`)
  assert.equal(answer.retcode, 1200)
  assert.match(String(answer.message), /example\.com is not this machine/)
  assert.equal((await send(`${origin}/old`)).status, 'ok')
  assert.deepEqual(simulator.ledger.map(({ media }) => media[0]), [
    { type: 'image', name: 'a.png', size: null, sha256: null, source: 'http' },
    { type: 'image', name: 'old', size: bytes.length, sha256, source: 'http' },
  ])
})

test('what cannot be read is an execution error and delivers nothing', async t => {
  const { simulator, client } = await startWithClient(t)
  const directory = temporaryFolder()
  await writeFile(join(directory, 'empty'), '')
  const origin = await serve(t, (_, response) => response.writeHead(404).end('no'))
  const sources = [
    join(directory, 'absent'), pathToFileURL(join(directory, 'absent')).href, directory, join(directory, 'empty'), 'base64://',
    'relative/path.png', 'ftp://127.0.0.1/a', 'file://elsewhere/a', `${origin}/absent`, 'http://127.0.0.1:1/refused', 'http://',
  ]
  for (const file of sources) {
    const answer = await client.call('send_group_msg', { group_id: 123456, message: [text('a'), image(file)] })
    assert.equal(answer.retcode, 1200, file)
    const upload = await client.call('upload_group_file', { group_id: 123456, file, name: 'a' })
    assert.equal(upload.retcode, 1200, file)
  }
  assert.equal(simulator.ledger.length, 0)
})

test('without a shared disk paths are not found, but what was downloaded there is', async t => {
  const { simulator, client } = await startWithClient(t, { sharedDisk: false })
  const path = join(temporaryFolder(), 'a.bin')
  await writeFile(path, bytes)
  for (const file of [path, pathToFileURL(path).href]) {
    const answer = await client.call('upload_group_file', { group_id: 123456, file, name: 'a' })
    assert.equal(answer.retcode, 1200)
    assert.match(String(answer.wording), /ENOENT/)
  }
  const origin = await serve(t, (_, response) => response.end(bytes))
  const downloaded = record((await client.call('download_file', { url: `${origin}/../etc/报告 1.bin` })).data).file
  assert.equal((await client.call('upload_group_file', { group_id: 123456, file: downloaded, name: 'a' })).status, 'ok')
  assert.equal(simulator.ledger[0]?.media[0]?.sha256, sha256)
})

test('download_file really downloads, into a folder that ends with the simulator', async t => {
  const { simulator, client } = await startWithClient(t)
  const origin = await serve(t, (_, response) => response.end(bytes))
  const path = String(record((await client.call('download_file', { url: `${origin}/a.bin` })).data).file)
  assert.deepEqual(await readFile(path), bytes)
  const inline = String(record((await client.call('download_file', { base64: bytes.toString('base64') })).data).file)
  assert.deepEqual(await readFile(inline), bytes)
  assert.equal((await client.call('download_file', { url: 'https://example.com/a.bin' })).retcode, 1200)
  assert.equal((await client.call('download_file', { url: `base64://${bytes.toString('base64')}` })).retcode, 1200)
  assert.equal((await client.call('download_file')).retcode, 1400)
  await Promise.all([simulator.close(), simulator.close()])
  await assert.rejects(readFile(path), { code: 'ENOENT' })
})

test('a slow file is not overtaken in its chat, while other chats go on', async t => {
  const { simulator, client } = await startWithClient(t)
  let release = (): void => undefined
  const requested = new Promise<void>(resolve => {
    void serve(t, (_, response) => {
      release = () => response.end(bytes)
      resolve()
    }).then(origin => {
      client.post('send_group_msg', { group_id: 123456, message: [text('slow'), image(`${origin}/a`)] })
      client.post('send_group_msg', { group_id: 123456, message: 'behind it' })
      client.post('upload_group_file', { group_id: 123456, file: '/nowhere', name: 'fails' })
      client.post('send_group_msg', { group_id: 123456, message: 'last' })
      client.post('send_group_msg', { group_id: 654321, message: 'elsewhere' })
    })
  })
  await requested
  await simulator.until(({ ledger }) => ledger.length === 1)
  assert.equal(simulator.ledger[0]?.text, 'elsewhere')
  release()
  await simulator.until(({ ledger }) => ledger.length === 4)
  assert.deepEqual(simulator.ledger.map(entry => entry.text), ['elsewhere', 'slow', 'behind it', 'last'])
})
