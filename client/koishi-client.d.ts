// The parts of @koishijs/client that the page uses. Its own declarations are source files that do not compile under this repository's
// rules.
import type { Component, Ref } from 'vue'

/** A page in the console's bar of activities. */
export interface PageOptions {
  path: string
  name: string | (() => string)
  icon?: string
  order?: number
  /** The authority that a user needs, if the console has a login. */
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

/** Set while there is a connection. */
export const socket: Ref<unknown>

/** Icons by name. */
export const icons: { register: (name: string, component: Component) => void }

/** An object in the browser's storage, by its name and the version of its shape. */
export function useStorage<T extends object>(key: string, version: number, fallback?: () => T): Ref<T>

/** Shows a text above everything else for a while. */
export const message: (options: {
  message: string
  type: 'success' | 'warning' | 'error' | 'info'
  customClass?: string
  /** In milliseconds; 0 until it is closed. */
  duration?: number
  showClose?: boolean
  grouping?: boolean
}) => void

/** Asks a question. It rejects if the answer is no. */
export const messageBox: {
  confirm: (text: string, title: string, options: {
    confirmButtonText: string
    cancelButtonText: string
    confirmButtonClass?: string
    customClass?: string
    showClose?: boolean
  }) => Promise<unknown>
  /** It rejects without an answer. */
  prompt: (text: string, title: string, options: {
    confirmButtonText: string
    cancelButtonText: string
    inputValue: string
    customClass?: string
  }) => Promise<{ value: string }>
}
