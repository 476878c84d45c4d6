import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

/** The one without windows takes half the time. */
const places = [process.env.CHROMIUM_PATH, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const executablePath = places.find(path => path && existsSync(path))
const missing = 'there is no Chromium: install the Debian package "chromium-headless-shell" or "chromium", or set CHROMIUM_PATH'

/** The reason to skip what needs a browser, or false: a machine without one may test everything else, CI may not. */
export const skip = executablePath === undefined && !process.env.CI ? missing : false

/** Starts a Chromium without a window that asks nothing of the internet. */
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

/** To be run on a page before its own scripts: nothing moves, so that nothing is waited for. */
export const still = `
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important }')
  document.adoptedStyleSheets = [sheet]
`
