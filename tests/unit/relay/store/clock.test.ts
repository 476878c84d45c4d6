import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Clock } from '../../../../src/relay/store/clock'

/** A machine whose clocks stand still. Times are in milliseconds. */
class TestMachine {
  now = 1_800_000_000_000
  awake = 5_000
  slept = 0
  boot = 'first'
  readonly wall = (): number => this.now
  readonly running = (): number => this.awake
  readonly uptime = (): number => this.awake + this.slept
  readonly clock = new Clock(this)

  pass(time: number): void {
    this.now += time
    this.awake += time
  }

  sleep(time: number): void {
    this.now += time
    this.slept += time
  }
}

const hour = 60 * 60 * 1000

describe('the clock', () => {
  test('shows what that of the machine shows, and follows it where it is kept in time', () => {
    const machine = new TestMachine()
    const { clock } = machine
    assert.equal(clock.now(), machine.now)
    machine.pass(hour)
    assert.equal(clock.now(), machine.now)
    machine.now += 1_500
    clock.follow()
    assert.equal(clock.now(), machine.now)
  })

  for (const step of [hour, -hour, 365 * 24 * hour]) {
    test(`runs on when that of the machine is set by ${step / hour} hours, and tells its times by that`, () => {
      const machine = new TestMachine()
      const { clock } = machine
      const before = clock.now()
      machine.now += step
      clock.follow()
      machine.pass(10)
      assert.equal(clock.now(), before + 10)
      assert.equal(clock.toWall(before), before + step)
      assert.equal(clock.toWall(clock.now()), machine.now)
    })
  }

  test('counts the time for which the machine slept', () => {
    const machine = new TestMachine()
    machine.sleep(hour)
    machine.clock.follow()
    assert.equal(machine.clock.now(), machine.now)
    machine.pass(1_000)
    machine.clock.follow()
    assert.equal(machine.clock.now(), machine.now)
  })

  for (const step of [0, hour, -hour]) {
    test(`goes on from what an earlier process read, whatever was set by ${step / hour} hours since, unless the machine was off`, () => {
      const [before, after] = [new TestMachine(), new TestMachine()]
      before.now += hour
      const reading = before.clock.read()
      after.now = before.now + step
      after.pass(60_000)
      after.clock.resume(reading)
      assert.equal(after.clock.now(), reading.time + 60_000)
      assert.equal(after.clock.toWall(after.clock.now()), after.now)
      after.boot = 'second'
      after.clock.resume(reading)
      assert.equal(after.clock.now(), reading.time + Math.max(60_000 + step, 0))
    })
  }

  test('goes by another relay whose machine has another time, and not by what that read a while ago', () => {
    const [machine, other] = [new TestMachine(), new TestMachine()]
    const { clock } = machine
    const reading = clock.read()
    machine.pass(20_000)
    clock.adopt(reading)
    assert.equal(clock.now(), machine.now)
    other.now += hour
    clock.adopt(new Clock(other).read())
    assert.equal(clock.now(), other.now)
    assert.equal(clock.toWall(clock.now()), machine.now)
  })

  test('says when a reading is of no more use', () => {
    const machine = new TestMachine()
    const reading = machine.clock.read()
    assert(!machine.clock.differs(reading))
    machine.pass(61_000)
    assert(machine.clock.differs(reading))
    const later = machine.clock.read()
    machine.now += hour
    assert(machine.clock.differs(later))
  })
})
