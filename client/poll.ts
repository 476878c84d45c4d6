import { onBeforeUnmount, onMounted } from 'vue'

/**
 * Does something now and again and again, as long as the component is there and somebody can see it.
 *
 * @param every how long after it was done, in milliseconds
 * @returns does it at once
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
