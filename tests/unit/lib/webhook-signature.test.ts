import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { isSigningSecret, signatureHeaders } from '../../../src/lib/webhook-signature'

/** The vector that the libraries of the specification share. */
const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  time: 1614265330_000,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}

describe('a webhook signature', () => {
  test('is that of the specification\'s own vector', () => {
    const { secret, id, time, body, signature } = vector
    assert.deepEqual(signatureHeaders(secret, { id, time, body }), { 'webhook-timestamp': '1614265330', 'webhook-signature': signature })
    assert.equal(new Webhook(secret).sign(id, new Date(time), body), signature)
  })

  test('counts whole seconds that are over', () => {
    const { secret, id, time, body } = vector
    assert.deepEqual(signatureHeaders(secret, { id, time: time + 999, body }), signatureHeaders(secret, { id, time, body }))
  })

  for (const secret of [vector.secret, 'a passphrase', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '密钥 é']) {
    test(`with the secret ${secret} is verified by the specification's library`, () => {
      const body = '{"content":"你好 😀 \\u0000"}'
      const webhook = secret === vector.secret ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' })
      const headers = { 'webhook-id': vector.id, ...signatureHeaders(secret, { id: vector.id, time: Date.now(), body }) }
      assert.deepEqual(webhook.verify(body, headers), JSON.parse(body))
      assert.throws(() => webhook.verify(`${body} `, headers), /No matching signature/)
      assert.throws(() => webhook.verify(body, { ...headers, 'webhook-id': 'another' }), /No matching signature/)
      assert.throws(() => new Webhook('whsec_AAAA').verify(body, headers), /No matching signature/)
    })
  }
})

describe('a secret of signatures', () => {
  for (const secret of [vector.secret, 'whsec_YQ==', 'whsec_+/+/', 'whsec', 'any text', '0', 'WHSEC_!', 'é']) {
    test(`may be ${secret}`, () => {
      assert(isSigningSecret(secret))
    })
  }
  for (const secret of ['', 'whsec_', 'whsec_YQ', 'whsec_YR==', 'whsec_-_-_', 'whsec_ YQ==', 'whsec_YQ==\n', 'whsec_no base64']) {
    test(`is not ${JSON.stringify(secret)}`, () => {
      assert(!isSigningSecret(secret))
    })
  }
})
