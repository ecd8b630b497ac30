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
  refused: { title: 'This was refused' },
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
