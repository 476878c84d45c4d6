import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cutPower } from './images'

// The short form; `npm run test:power` is the long form.
const seed = Number(process.env.FAULTS_SEED ?? 1)

describe('a power cut', () => {
  test('takes nothing that was acknowledged, and leaves the file as it was after some commit', async t => {
    const report = await cutPower(100, seed)
    t.diagnostic(`${report.images} images, ${report.inCheckpoints} of them within a checkpoint`)
    assert.deepEqual([report.missing, report.broken], [0, []])
    assert(report.inCheckpoints > 0 && report.inCheckpoints < report.images)
  })

  test('takes acknowledged rows where the disk ignores the syncs of the store: the images would show a loss', async () => {
    const report = await cutPower(20, seed, false)
    assert(report.missing > 0)
  })
})
