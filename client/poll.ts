import { onBeforeUnmount, onMounted } from 'vue'

/**
 * Runs `look` now and then periodically, while the component exists and the page is visible.
 *
 * @param every the pause after each run, in milliseconds
 * @returns runs `look` at once
 */
export function usePolling(look: () => Promise<void>, every = 2000): () => Promise<void> {
  let timer: number | undefined
  let isGone = false
  const turn = async (): Promise<void> => {
    clearTimeout(timer)
    if (document.visibilityState === 'visible') await look()
    clearTimeout(timer)
    if (!isGone) timer = window.setTimeout(run, every)
  }
  const run = (): void => void turn()
  onMounted(() => {
    document.addEventListener('visibilitychange', run)
    run()
  })
  onBeforeUnmount(() => {
    isGone = true
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', run)
  })
  return turn
}
