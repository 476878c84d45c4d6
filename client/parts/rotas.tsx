import { defineComponent, reactive, type VNode } from 'vue'
import { bots } from '../contacts'
import { me, savePerson, saveRota, swap, type Person, type Rota } from '../duty'
import { people, rotas } from '../inventory'
import { fromLocal, ownZone, texts, toLocal, writeMoment, zones } from '../texts'
import { section } from './basics'
import { bind, button, Field, inputField, model, multiSelect, plain, selectField, table, type Labelled, type Option } from './elements'
import { nameOfPerson } from './incident'
import { drop, SaveDialog, useDialog, viewActions, viewName } from './listed'

/** Who can be called by `@`, and who is on duty. */
export const RotasView = defineComponent({
  setup() {
    const { show, close, view } = useDialog()
    const editPerson = (of?: Person): void => {
      const { name = '', called = '', accounts = {} } = of ?? {}
      const wish = reactive({ name, called, accounts: { ...accounts } })
      const platforms = new Set([...bots.value.map(bot => bot.slice(0, bot.indexOf(':'))), ...Object.keys(accounts)])
      const viewFields = (problem?: string): VNode => {
        const { rotas: t, keys } = texts.value
        return (
          <div>
            {!of && inputField(keys.name, bind(wish, 'name'), { hint: t.personHint, problem })}
            {inputField(t.called, bind(wish, 'called'), { hint: t.calledHint })}
            {[...platforms].map(platform => inputField(t.account(platform), model(wish.accounts[platform] ?? '', id => {
              wish.accounts[platform] = id
            })))}
          </div>
        )
      }
      const title = of ? undefined : texts.value.rotas.makePerson
      show(() => <SaveDialog name={wish.name} title={title} save={() => savePerson(wish)} onClose={close}>{viewFields}</SaveDialog>)
    }
    const editRota = (of?: Rota): void => {
      const { name = '', people: members = [], every = '1w', from = new Date().toISOString(), zone = ownZone() } = of ?? {}
      const wish = reactive({ name, people: members, every, from: clockIn(from, zone), zone })
      const viewFields = (problem?: string): VNode => {
        const { rotas: t, keys, beats, targets } = texts.value
        return (
          <div>
            {!of && inputField(keys.name, bind(wish, 'name'), { hint: t.nameHint, problem })}
            <Field label={t.people} hint={t.membersHint}>
              {(labelled: Labelled) => multiSelect(wish.people, peopleOptions(), bind(wish, 'people')['onUpdate:modelValue'], { ...labelled, searched: true })}
            </Field>
            {inputField(beats.every, bind(wish, 'every'), { hint: t.everyHint })}
            <div class="relay-pair">
              {inputField(t.from, bind(wish, 'from'), { type: 'datetime-local', hint: t.fromHint })}
              {selectField(targets.zone, bind(wish, 'zone'), zones(wish.zone).map(plain), { searched: true })}
            </div>
          </div>
        )
      }
      const title = of ? undefined : texts.value.rotas.make
      show(() => <SaveDialog name={wish.name} title={title} save={() => saveRota(wish)} onClose={close}>{viewFields}</SaveDialog>)
    }
    /** Has somebody stand in. */
    const takeOver = ({ name, until }: Rota): void => {
      const t = texts.value.rotas
      const wish = reactive({ who: me.value.name, from: toLocal(new Date().toISOString()), until: toLocal(until) })
      const viewFields = (): VNode => (
        <div>
          {selectField(t.who, bind(wish, 'who'), peopleOptions(), { searched: true })}
          <div class="relay-pair">
            {inputField(t.swapFrom, bind(wish, 'from'), { type: 'datetime-local' })}
            {inputField(t.swapUntil, bind(wish, 'until'), { type: 'datetime-local', hint: t.swapHint })}
          </div>
        </div>
      )
      const save = () => swap(name, { who: wish.who, from: fromLocal(wish.from), until: fromLocal(wish.until) })
      show(() => <SaveDialog name={name} title={t.swapTitle(name)} save={save} onClose={close}>{viewFields}</SaveDialog>)
    }
    const viewPeople = (all: readonly Person[]): VNode => {
      const { rotas: t, keys, targets, common } = texts.value
      return table(t.people, [keys.name, t.called, t.accounts, keys.actions], all.map(person => ({
        key: `${person.origin} ${person.name}`,
        cells: [
          viewName(person, all), person.called || '–', common.list(Object.entries(person.accounts).map(([platform, id]) => `${platform}:${id}`)),
          viewActions(person, [[targets.change, () => editPerson(person)], [targets.remove, () => drop('people', person.name)]]),
        ],
      })))
    }
    const viewRotas = (all: readonly Rota[]): VNode => {
      const { rotas: t, keys, targets, common, beats } = texts.value
      return table(t.list, [keys.name, t.now, t.turns, keys.actions], all.map(rota => ({
        key: `${rota.origin} ${rota.name}`,
        cells: [
          viewName(rota, all),
          <span>
            <strong>{nameOfPerson(rota.now)}</strong>
            <span class="relay-hint">{rota.until && t.until(writeMoment(rota.until))}</span>
          </span>,
          <span>
            {rota.people.map(nameOfPerson).join(' → ')}
            <span class="relay-hint">{common.named(beats.each(rota.every), rota.zone)}</span>
            {rota.swaps.map(({ who, from, until }) => (
              <span class="relay-hint">{t.swapped(nameOfPerson(who), writeMoment(from), writeMoment(until))}</span>
            ))}
          </span>,
          viewActions(rota, [[targets.change, () => editRota(rota)], [targets.remove, () => drop('rotas', rota.name)]], [
            [t.swap, () => takeOver(rota)],
          ]),
        ],
      })))
    }
    return () => {
      const t = texts.value.rotas
      return (
        <div>
          {viewSection(t.people, t.peopleHint, people.value, viewPeople, button(t.makePerson, () => editPerson()))}
          {people.value?.length !== 0 && viewSection(t.list, t.hint, rotas.value, viewRotas, button(t.make, () => editRota()))}
          {view()}
        </div>
      )
    }
  },
})

/** @param all absent until it is loaded */
function viewSection<T>(
  title: string, hint: string, all: readonly T[] | undefined, view: (all: readonly T[]) => VNode, make: VNode,
): VNode | undefined {
  return all && section(title, [<p class="relay-hint">{hint}</p>, all.length > 0 && view(all)], make)
}

const peopleOptions = (): Option[] => (people.value ?? []).map(({ name, called }) => ({ value: name, label: called || name, hint: name }))

/** What the clocks of a zone show at a moment, in the format of `datetime-local`. */
function clockIn(moment: string, timeZone: string): string {
  return new Date(moment).toLocaleString('sv-SE', { timeZone }).slice(0, 16).replace(' ', 'T')
}
