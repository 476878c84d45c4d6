// Fills an upload directory with expired files.
import { randomUUID } from 'node:crypto'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { numberOf, textOf } from '../lib/values'
import { serve } from './serve'

const age = 7 * 24 * 60 * 60 * 1000

serve({
  fill(argument) {
    const folder = textOf(argument, 'folder')
    const past = new Date(Date.now() - age)
    for (let count = numberOf(argument, 'count'); count > 0; count--) {
      const path = join(folder, randomUUID())
      mkdirSync(path)
      const file = join(path, 'artifact.txt')
      writeFileSync(file, 'x')
      utimesSync(file, past, past)
    }
    return {}
  },
})
