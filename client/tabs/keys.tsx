import { defineComponent, shallowRef, type VNode, type VNodeChild } from 'vue'
import { placesOf, removeTarget, revokeKey, type Key, type Target } from '../admin'
import { call } from '../api'
import { listOf, numberOf, textOf, type Fields } from '../fields'
import { inventoryProblem, keys, refreshInventory, targets } from '../inventory'
import { notice, section } from '../parts/basics'
import { button, confirm, table, type TableRow } from '../parts/elements'
import { NewKeyDialog, RotateDialog } from '../parts/key-dialogs'
import { end, viewActions, viewName } from '../parts/listed'
import { RotasView } from '../parts/rotas'
import { describeChat, describePolicy } from '../parts/target'
import { TargetDialog } from '../parts/target-dialog'
import { usePolling } from '../poll'
import { about } from '../state'
import { languageNames, texts, wordFor, writeMoment } from '../texts'

/** Keys, targets, people and rotas: from the settings, and created and changed here. */
export const KeysTab = defineComponent({
  setup() {
    const usage = shallowRef<Fields[]>([])
    const dialog = shallowRef<() => VNode>()
    usePolling(async () => {
      const [{ isRight, data }] = await Promise.all([call('GET', '/statusz'), refreshInventory()])
      if (isRight) usage.value = listOf(data.keys)
    }, 5000)
    const show = (view?: () => VNode): void => {
      dialog.value = view
    }
    const close = (): void => show()
    const newKey = (): void => show(() => <NewKeyDialog onClose={close} />)
    const rotate = (key: Key): void => show(() => <RotateDialog of={key} onClose={close} />)
    const newTarget = (): void => show(() => <TargetDialog onClose={close} />)
    const change = (target: Target): void => show(() => <TargetDialog of={target} onClose={close} />)
    const revoke = async ({ name, lastUsedAt }: Key): Promise<void> => {
      const t = texts.value.keys
      const text = lastUsedAt === undefined ? t.revokeText : t.revokeUsed(writeMoment(lastUsedAt))
      if (await confirm({ title: t.revokeTitle(name), text, verb: t.revoke })) await end(await revokeKey(name), t.revoked(name))
    }
    const remove = async ({ name }: Target): Promise<void> => {
      const t = texts.value.targets
      const users = (targets.value ?? []).filter(({ first }) => first.some(({ address }) => address === name)).map(each => each.name)
      const text = users.length > 0 ? t.removeUsed(texts.value.common.list(users)) : t.removeText
      const question = { title: t.removeTitle(name), text, verb: t.remove }
      if (await confirm(question)) await end(await removeTarget(name), t.removed(name))
    }
    return () => {
      const t = texts.value
      const { value: why } = inventoryProblem
      return (
        <div>
          {why && notice('bad', t.common.failed(why))}
          {!keys.value && !targets.value && !why && <p role="status">{t.common.loading}</p>}
          {keys.value && section(t.keys.list, (
            <div>
              <p class="relay-hint">{t.keys.hint}</p>
              {table(t.keys.list, keyHeads(), keyRows(keys.value, usage.value, rotate, revoke))}
            </div>
          ), button(t.keys.make, newKey, { kind: 'primary' }))}
          {targets.value && section(t.targets.list, (
            <div>
              <p class="relay-hint">{t.targets.hint}</p>
              {targets.value.length === 0
                ? <p>{t.targets.none}</p>
                : table(t.targets.list, targetHeads(), targets.value.map(target => targetRow(target, change, remove)))}
            </div>
          ), button(t.targets.make, newTarget, { kind: 'primary' }))}
          <RotasView />
          <p class="relay-hint">{t.keys.settingsHint}</p>
          {dialog.value?.()}
        </div>
      )
    }
  },
})

function keyHeads(): string[] {
  const t = texts.value.keys
  return [t.name, t.targets, t.allow, t.expires, t.used, t.actions]
}

function keyRows(all: readonly Key[], usage: readonly Fields[], rotate: (key: Key) => unknown, revoke: (key: Key) => unknown): TableRow[] {
  const t = texts.value.keys
  const usageOf = (name: string | null): Fields | undefined => usage.find(each => each.name === name)
  const master = usageOf(null)
  return [
    { key: '', cells: [viewMaster(), t.everywhere, t.everything, t.always, viewUse(textOf(master?.last_used), master), ''] },
    ...all.map(key => ({
      key: `${key.origin} ${key.name}`,
      cells: [
        viewName(key, all),
        key.targets === undefined ? t.everywhere : texts.value.common.list(key.targets.map(describeChat)),
        <span>
          {texts.value.common.list(key.allow.map(scope => wordFor(t.scopes, scope)))}
          <span class="relay-hint">{describeLimits(key)}</span>
        </span>,
        viewExpiry(key.expires),
        viewUse(key.lastUsedAt ?? textOf(usageOf(key.name)?.last_used), usageOf(key.name)),
        viewActions(key, [[t.rotate, () => rotate(key)], [t.revoke, () => revoke(key)]]),
      ],
    })),
  ]
}

/** The master key and its origin. */
function viewMaster(): VNode {
  const t = texts.value.keys
  const { keyFile = '' } = about.value ?? {}
  return (
    <span class="relay-named">
      {t.master}
      <span class="relay-badge">{keyFile === '' ? t.inSettings : t.generated(keyFile)}</span>
    </span>
  )
}

/** The other limits of a key, in one line; empty if there are none. */
function describeLimits({ sources, rate, from }: Key): string {
  const { keys: t, common } = texts.value
  const bound = sources.length > 0 ? [t.sourcesLine(common.list(sources))] : []
  return common.list([...bound, ...rate === undefined ? [] : [t.rateLine(rate)], ...from.length > 0 ? [t.fromLine(common.list(from))] : []])
}

function viewExpiry(expires: string | undefined): VNodeChild {
  const t = texts.value.keys
  if (expires === undefined) return t.always
  const time = Date.parse(expires)
  // A key is valid until the end of its last day.
  const date = writeMoment(time - 1)
  return time < Date.now() ? <span class="relay-state failed">{texts.value.common.named(date, t.over)}</span> : date
}

function viewUse(last: string, usage: Fields | undefined): VNodeChild {
  const t = texts.value.keys
  if (last === '') return t.never
  const address = textOf(usage?.last_address)
  return (
    <span>
      {address === '' ? writeMoment(last) : t.from(writeMoment(last), address)}
      {usage && <span class="relay-hint">{t.counts(numberOf(usage.accepted), numberOf(usage.sent), numberOf(usage.failed), numberOf(usage.refused))}</span>}
    </span>
  )
}

function targetHeads(): string[] {
  const t = texts.value.targets
  return [t.name, t.to, t.lang, texts.value.keys.actions]
}

function targetRow(target: Target, change: (target: Target) => unknown, remove: (target: Target) => unknown): TableRow {
  const { targets: t } = texts.value
  const { name, first, lang, origin, skipped } = target
  const places = placesOf(target).map(describeChat)
  const policy = describePolicy(target)
  const languages: Partial<Record<string, string>> = languageNames
  return {
    key: `${origin} ${name}`,
    cells: [
      viewName(target, targets.value ?? []),
      <span>
        {first.length > 0 ? places.join(' → ') : texts.value.common.list(places)}
        {policy && <span class="relay-hint">{policy}</span>}
        {skipped.length > 0 && <span class="relay-state unanswered">{t.skips(texts.value.common.list(skipped))}</span>}
      </span>,
      lang === '' ? t.defaultLang : languages[lang] ?? lang,
      viewActions(target, [[t.change, () => change(target)], [t.remove, () => remove(target)]]),
    ],
  }
}
