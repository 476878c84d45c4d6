declare module '*.yml' {
  interface Texts { [name: string]: string | Texts }
  const texts: Texts
  export default texts
}
