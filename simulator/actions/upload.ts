import { writeFile } from 'node:fs/promises'
import { badParameter, executionError } from '../answers'
import { fetchLink, isFetchable } from '../fetch'
import { nameOfLink } from '../media'
import { inTurn } from '../messages'
import { parseText } from '../parse'
import type { Target } from '../types'
import type { Action, ActionContext } from './action'
import { groupTarget, privateTarget } from './targets'

/** The actions about files. */
export const uploadActions: Readonly<Record<string, Action>> = {
  upload_group_file: context => upload(context, groupTarget(context.platform, context.call.params)),
  upload_private_file: context => upload(context, privateTarget(context.platform, context.call.params)),
  download_file: context => download(context),
}

function upload({ platform, call: { action, params }, weight, isSwallowed }: ActionContext, target: Target): Promise<unknown> {
  const { profile } = platform
  const file = parseText(params.file)
  if (file === null) throw badParameter(profile, 'file must be given')
  const name = parseText(params.name)
  if (name === null && (profile.uploadName.required || params.name !== undefined)) {
    throw badParameter(profile, 'name must be given')
  }
  if (name !== null && !profile.uploadName.slashes && /[/\\]/.test(name)) throw badParameter(profile, 'name must not contain / or \\')
  const opening = platform.opener.open(file, 'upload', name)
  opening.catch(() => undefined)
  return inTurn(platform.messages.chat(target), async () => {
    const media = [await opening]
    platform.deliver({ target, kind: 'file', action, segments: [], media, weight, isSwallowed })
    return profile.uploadData === 'null' ? null : { file_id: `/${media[0]?.sha256?.slice(0, 32) ?? name ?? ''}` }
  })
}

/** Data: `{ file }`, a path on the platform's disk. */
async function download({ platform, call: { params } }: ActionContext): Promise<unknown> {
  const { profile, downloads, signal } = platform
  const url = parseText(params.url)
  const base64 = parseText(params.base64)
  if (url === null && base64 === null) throw badParameter(profile, 'url must be given')
  if (url !== null && !/^https?:\/\//i.test(url)) throw executionError(profile, `Failed to download ${url.slice(0, 200)}`)
  if (url !== null && !isFetchable(url)) throw executionError(profile, 'the simulator fetches only from this machine')
  try {
    const name = parseText(params.name) ?? (url === null ? 'download' : nameOfLink(url))
    const path = await downloads.place(name)
    if (url !== null) await fetchLink(url, signal, path)
    else if (base64 !== null) await writeFile(path, Buffer.from(base64.replace(/^base64:\/\//, ''), 'base64'))
    return { file: path }
  } catch (error) {
    throw executionError(profile, error instanceof Error ? error.message : String(error))
  }
}
