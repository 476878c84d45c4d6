// What the page uses of @koishijs/client, whose own declarations are sources that do not compile under the rules of this repository.
import type { Component, Ref } from 'vue'

/** A page in the console's bar of activities. */
export interface PageOptions {
  path: string
  name: string | (() => string)
  icon?: string
  order?: number
  /** What its user has to be allowed, where users are known. */
  authority?: number
  component: Component
}

export interface Context {
  page: (options: PageOptions) => () => void
}

/** Calls a listener of the server; `undefined` while there is no connection. */
export function send(type: string, ...args: unknown[]): Promise<unknown> | undefined

/** The settings of the console's user. */
export function useConfig(): Ref<{ locale?: string }>

/** Whether there is a connection. */
export const socket: Ref<unknown>

/** Icons by name. */
export const icons: { register: (name: string, component: Component) => void }

/** An object that the browser keeps, by its name and the version of its shape. */
export function useStorage<T extends object>(key: string, version: number, fallback?: () => T): Ref<T>

/** Shows a text for a while, above everything else. */
export const message: (options: {
  message: string
  type: 'success' | 'warning' | 'error' | 'info'
  customClass?: string
  /** In milliseconds; 0 for as long as nobody closes it. */
  duration?: number
  showClose?: boolean
  grouping?: boolean
}) => void

/** Asks a question. It fails where the answer is no. */
export const messageBox: {
  confirm: (text: string, title: string, options: {
    confirmButtonText: string
    cancelButtonText: string
    confirmButtonClass?: string
    customClass?: string
    showClose?: boolean
    autofocus?: boolean
  }) => Promise<unknown>
}
