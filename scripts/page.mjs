// Builds the page in Koishi's console from client/ into dist/index.js and dist/style.css, and removes whatever else is in dist/.
import { join, resolve } from 'node:path'

// Vite would say at each build that its CommonJS form, which the builder of @koishijs/client uses, is going to be removed.
process.env.VITE_CJS_IGNORE_WARNING ??= 'true'
const { build } = await import('@koishijs/client/lib')

/** Modules that the page has in common with the console, beside whose own it is served. */
const shared = { 'vue': '../vue.js', '@koishijs/client': '../client.js' }

export async function buildPage(root = resolve(import.meta.dirname, '..')) {
  await build(root, {
    configFile: false,
    logLevel: 'error',
    esbuild: { jsx: 'automatic', jsxImportSource: 'vue' },
    build: {
      lib: { entry: join(root, 'client/index.ts') },
      // Vue's own JSX runtime imports one thing that it does not use.
      rollupOptions: { output: { paths: shared }, onwarn: () => undefined },
    },
  })
}
