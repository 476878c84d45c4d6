import { Bot, Context, HTTP } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMedia } from '../../../src/platform/web'
import { serve } from '../../support/listen'

test('a picture behind a link is read with the credentials in it, and gets the ending that a chat shows', async t => {
  const asked: unknown[] = []
  const { host } = new URL(await serve(t, (request, response) => {
    asked.push(request.headers.authorization)
    response.setHeader('content-type', 'image/jpeg').end('x')
  }))
  const app = new Context()
  app.plugin(HTTP)
  const bot = new (class extends Bot {})(app, {}, 'telegram')
  const nameOf = async (path: string, credentials = ''): Promise<string> => (
    (await readMedia(bot, { type: 'image', src: `http://${credentials}${host}/${path}`, name: '' }, 1_000)).name
  )
  assert.equal(await nameOf('snap.jpg', 'admin:a%20word@'), 'snap.jpg')
  assert.deepEqual(asked, [`Basic ${Buffer.from('admin:a word').toString('base64')}`])
  assert.deepEqual(await Promise.all(['camera.front_door?token=1', 'snapshot.cgi', 'a.png'].map(path => nameOf(path))), [
    'camera.front_door.jpg', 'snapshot.cgi.jpg', 'a.png',
  ])
})
