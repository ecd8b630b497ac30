import { type Child, createContext, useContext } from 'hono/jsx'

/** How a person reads: the zone of their days and times. */
export type View = {
  /** Of the IANA database, e.g. `Asia/Ho_Chi_Minh`. */
  zone: string
}

const Shown = createContext<View | undefined>(undefined)

/** Renders a part of a page as a person reads it. */
export function ForView({ view, children }: { view: View; children: Child }) {
  return <Shown.Provider value={view}>{children}</Shown.Provider>
}

/** How the person whose page is rendered reads. Only components may ask: elsewhere the view is a parameter. */
export function useView(): View {
  const view = useContext(Shown)
  if (!view) throw new Error('nothing is rendered for anybody here')
  return view
}
