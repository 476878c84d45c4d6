// A plugin that the loader updates, as the config page does, gets `${{ env.NAME }}` as it is written. Only its first start interpolates.
const { Context } = require('koishi')
const Loader = require('@koishijs/loader').default

async function main() {
  process.env.EXAMPLE = 'value'
  const configs = []
  const loader = new Loader()
  loader.app = new Context()
  loader.import = async () => ({ name: 'example', apply: (ctx, config) => configs.push(config.key) })
  loader.app.scope[Loader.kRecord] = {}
  await loader.app.start()
  await loader.reload(loader.app, 'example', { key: '${{ env.EXAMPLE }}' })
  await loader.reload(loader.app, 'example', { key: '${{ env.EXAMPLE }}', other: 1 })
  await new Promise(resolve => setTimeout(resolve, 100))
  if (configs.every(key => key === 'value')) end(1, 'mended: the update is interpolated')
  end(0, `reproduced: the plugin got first ${configs[0]}, then ${configs.at(-1)}`)
}

function end(code, line) {
  console.log(line)
  process.exit(code)
}

main()
