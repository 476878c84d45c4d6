declare module '*.yml' {
  const texts: Record<string, unknown>
  export default texts
}
