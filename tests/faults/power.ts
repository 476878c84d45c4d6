// Cuts the power of the store, and of a relay at work: `npm run test:power -- [--images 1000] [--seed N]`.
import { parseArgs } from 'node:util'
import { cutPower } from './images'
import { cutPowerOfRelay } from './traffic'

const { values } = parseArgs({ options: { images: { type: 'string', default: '1000' }, seed: { type: 'string' } } })

async function main(): Promise<void> {
  const seed = Number(values.seed ?? Date.now() % 100_000_000)
  const all = Number(values.images)
  console.log(`seed ${seed}`)
  const store = await cutPower(Math.ceil(all * 0.8), seed)
  console.log(`store: ${store.images} images, ${store.inCheckpoints} of them within a checkpoint; ${store.acknowledged} rows asked for`)
  for (const problem of store.broken) console.error(problem)
  const relay = await cutPowerOfRelay(Math.max(1, all - store.images), seed)
  console.log(`relay: ${relay.images} images; ${relay.acknowledged} deliveries asked for; ${relay.lost} messages not sent although repeated`)
  const control = [await cutPower(20, seed, false), await cutPowerOfRelay(10, seed, false)].map(({ missing }) => missing)
  console.log(`control, without the syncs of the store: ${control.join(' and ')} missing`)
  const missing = store.missing + relay.missing
  console.log(`${store.images + relay.images} images, ${missing} acknowledged messages missing, ${relay.doubled} doubled beyond what is promised`)
  process.exit(missing + relay.doubled + relay.lost + store.broken.length > 0 || control.includes(0) ? 1 : 0)
}

void main()
