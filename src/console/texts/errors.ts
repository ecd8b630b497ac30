/** Texts of the pages that explain why there is nothing else to see. */
export const errorTexts = {
  forbidden: {
    title: 'You may not do this',
    body: 'Your roles do not include this. Ask an admin of this service if you need it.',
  },
  notFound: {
    title: 'Nothing here',
    body: 'There is no such page or object, or it belongs to an account that you may not see.',
  },
  foreignForm: {
    title: 'This request was refused',
    body: 'It did not come from a page of your session, so nothing was done. Open the page again and repeat what you did there.',
  },
  refused: { title: 'This was refused' },
  limited: { title: 'Too many requests' },
  wrongMethod: {
    title: 'This page cannot be used like that',
    body: 'Nothing was done. Open the page from the search, and use its buttons.',
  },
  interrupted: {
    title: 'The service cannot reach its database',
    body: 'Whether what you sent was done is not known. You return to the form in a few seconds, with what you typed: look at its page first, and send it again only if it was not done.',
  },
  unavailable: {
    title: 'The service cannot reach its database',
    body: 'Nothing was changed. This page tries again by itself every few seconds.',
  },
  failed: {
    title: 'Something went wrong',
    body: (requestId: string) =>
      `Nothing else is known here. Pass this on to the people who run the service: request ${requestId}.`,
  },
  back: 'Back to the search',
} as const
