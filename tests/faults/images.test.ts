import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cutPower } from './images'
import { cutPowerOfRelay } from './traffic'

// The short form; `npm run test:power` is the long form.
const seed = Number(process.env.FAULTS_SEED ?? 1)

describe('a power cut', () => {
  test('takes nothing that was acknowledged, and leaves the file as it was after some commit', async t => {
    const report = await cutPower(100, seed)
    t.diagnostic(`${report.images} images, ${report.inCheckpoints} of them within a checkpoint`)
    assert.deepEqual([report.missing, report.broken], [0, []])
    assert(report.inCheckpoints > 0 && report.inCheckpoints < report.images)
  })

  test('takes no delivery that a relay acknowledged, and none is sent twice when its key is repeated', async t => {
    const report = await cutPowerOfRelay(10, seed)
    t.diagnostic(`${report.images} images, ${report.acknowledged} deliveries asked for`)
    assert.deepEqual([report.missing, report.doubled, report.lost], [0, 0, 0])
    assert(report.acknowledged > 0)
  })

  test('takes acknowledged rows where the disk ignores the syncs of the store: the images would show a loss', async () => {
    const report = await cutPower(20, seed, false)
    assert(report.missing > 0)
  })
})
