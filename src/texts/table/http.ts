/** Texts about requests and answers. */
export const http = {
  'with-flaw': ['{failure}; {flaw}', '{failure}；{flaw}'],
} as const
