€

ans*uid27
ci	
Running