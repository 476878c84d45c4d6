import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { otherBot, OtherBot } from '../../support/other-bot'
import { relayFor } from '../../support/relay'
import { call, messageIdOf, oneBot } from './support'

/** What the other platform was asked to take back. */
const recalled: string[][] = []

class PlatformBot extends OtherBot {
  override deliver(sent: OtherBot['sent'][number]): Promise<string> {
    return super.deliver(sent).then(() => '77')
  }

  override deleteMessage(channelId: string, messageId: string): Promise<void> {
    recalled.push([channelId, messageId])
    return Promise.resolve()
  }

  override getGuildList(): Promise<Universal.List<Universal.Guild>> {
    return Promise.resolve({ data: [{ id: 'guild', name: 'Guild' }] })
  }

  override getChannelList(): Promise<Universal.List<Universal.Channel>> {
    return Promise.resolve({
      data: [
        { id: 'general', name: 'General', type: Universal.Channel.Type.TEXT },
        { id: 'talk', type: Universal.Channel.Type.VOICE },
        { id: '8', type: Universal.Channel.Type.TEXT },
      ],
    })
  }
}

test('a bot of another platform serves as well, where there is no OneBot bot', async t => {
  const relay = await relayFor(t, {
    setup(app) {
      app.plugin(PlatformBot, {})
    },
  })
  oneBot(relay).status = Universal.Status.OFFLINE
  assert.match((await call(relay, 'get_status')).text, /"online":false/, 'nothing could be sent')
  oneBot(relay).hidden = true
  const id = messageIdOf(await call(relay, 'send_group_msg', { group_id: 'general', message: 'hello' }))
  assert.equal((await call(relay, 'delete_msg', { message_id: id })).retcode, 0)
  assert.deepEqual(recalled, [['general', '77']])
  const said = '[CQ:reply,id=5]look [CQ:at,qq=eva] and [CQ:at,qq=all]![CQ:record,file=base64://dm9pY2U=]'
  messageIdOf(await call(relay, 'send_group_msg', { group_id: 'general', message: said }))
  const told = otherBot(relay).sent.slice(1).map(({ elements }) => elements.map(({ type, attrs }): string => (
    type === 'text' ? String(attrs.content) : `${type} ${String(attrs.id ?? attrs.type ?? attrs.src).replace(/^(data):.*/, '$1')}`
  )))
  assert.deepEqual(told, [['quote 5', 'look ', 'at eva', ' and ', 'at all', '!'], ['audio data']])
  const groups = [{ group_id: 'general', group_name: 'General' }, { group_id: 8, group_name: 'Guild' }]
  assert.deepEqual((await call(relay, 'get_group_list')).body.data, groups)
  assert.deepEqual((await call(relay, 'get_login_info')).body.data, { user_id: 'me', nickname: '' })
})
