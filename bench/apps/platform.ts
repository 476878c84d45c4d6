// The platform: the repository's simulator, in a process of its own.
import { Simulator } from '../../simulator'
import { numberOf } from '../lib/values'
import { serve } from './serve'

const started = Simulator.start({ anyTarget: true, keep: 100 })

serve({
  start: async () => ({ endpoint: (await started).endpoint }),
  say,
})

/** Posts messages of group members, none of them a command. The bot receives them as fast as it reads. */
async function say(argument: unknown): Promise<object> {
  const simulator = await started
  const count = numberOf(argument, 'count')
  for (let said = 0; said < count; said++) {
    simulator.say({ group: '123456', user: '10001', text: `what do you think of build ${said}, is it any good?` })
    // Lets the frames be written.
    if (said % 100 === 99) await new Promise(resolve => setImmediate(resolve))
  }
  return {}
}
