import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Clock } from '../../../src/relay/clock'

/** Times are in milliseconds; the machine has been awake as long as the process runs, but for sleep. */
class Machine {
  wall = 1_800_000_000_000
  running = 5_000
  slept = 0
  readonly clock = new Clock(() => this.wall, () => this.running, () => (this.running + this.slept) / 1000)

  pass(time: number): void {
    this.wall += time
    this.running += time
  }

  sleep(time: number): void {
    this.wall += time
    this.slept += time
  }
}

const hour = 60 * 60 * 1000

describe('the clock', () => {
  test('shows what that of the machine shows, and follows it where it is kept in time', () => {
    const machine = new Machine()
    const { clock } = machine
    assert.equal(clock.now(), machine.wall)
    machine.pass(hour)
    assert.equal(clock.now(), machine.wall)
    machine.wall += 1_500
    clock.follow()
    assert.equal(clock.now(), machine.wall)
  })

  for (const step of [hour, -hour, 365 * 24 * hour]) {
    test(`runs on when that of the machine is set by ${step / hour} hours, and tells its times by that`, () => {
      const machine = new Machine()
      const { clock } = machine
      const before = clock.now()
      machine.wall += step
      clock.follow()
      machine.pass(10)
      assert.equal(clock.now(), before + 10)
      assert.equal(clock.toWall(before), before + step)
      assert.equal(clock.toWall(clock.now()), machine.wall)
    })
  }

  test('counts the time for which the machine slept', () => {
    const machine = new Machine()
    machine.sleep(hour)
    machine.clock.follow()
    assert.equal(machine.clock.now(), machine.wall)
    machine.pass(1_000)
    machine.clock.follow()
    assert.equal(machine.clock.now(), machine.wall)
  })

  test('goes on from what an earlier process read, and counts that it was away', () => {
    const [before, after] = [new Machine(), new Machine()]
    before.wall += hour
    const reading = before.clock.read()
    after.wall = reading.wall + 60_000
    after.clock.resume(reading)
    assert.equal(after.clock.now(), reading.time + 60_000)
  })

  test('does not go back when the clock of the machine was set back meanwhile', () => {
    const [ahead, right] = [new Machine(), new Machine()]
    ahead.wall += 365 * 24 * hour
    const reading = new Clock(() => ahead.wall, () => ahead.running, () => 0).read()
    right.clock.resume(reading)
    assert.equal(right.clock.now(), reading.time)
    assert.equal(right.clock.toWall(reading.time), right.wall)
  })

  test('goes by another relay whose machine has another time, and not by what that read a while ago', () => {
    const [machine, other] = [new Machine(), new Machine()]
    const { clock } = machine
    const reading = clock.read()
    machine.pass(20_000)
    clock.adopt(reading)
    assert.equal(clock.now(), machine.wall)
    other.wall += hour
    clock.adopt(new Clock(() => other.wall, () => other.running, () => 0).read())
    assert.equal(clock.now(), other.wall)
    assert.equal(clock.toWall(clock.now()), machine.wall)
  })

  test('says when a reading is of no more use', () => {
    const machine = new Machine()
    const reading = machine.clock.read()
    assert(!machine.clock.differs(reading))
    machine.pass(61_000)
    assert(machine.clock.differs(reading))
    const later = machine.clock.read()
    machine.wall += hour
    assert(machine.clock.differs(later))
  })
})
