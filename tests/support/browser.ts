import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

/** The headless shell takes half the time of a full Chromium. */
const places = [process.env.CHROMIUM_PATH, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const executablePath = places.find(path => path && existsSync(path))
const missing = 'there is no Chromium: install the Debian package "chromium-headless-shell" or "chromium", or set CHROMIUM_PATH'

/** Why tests that need a browser are skipped, or false. A machine without one can run all other tests; CI must have one. */
export const skip = executablePath === undefined && !process.env.CI ? missing : false

/** Starts a headless Chromium that makes no requests to the internet of its own. */
export function launchBrowser(): Promise<Browser> {
  assert(executablePath !== undefined, missing)
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/** A script to run before those of a page. It disables animations, so that tests need not wait for them. */
export const still = `
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important }')
  document.adoptedStyleSheets = [sheet]
`
